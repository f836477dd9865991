; Trucks bring packages to any place of their city, planes to the airports of all cities.
(define (domain logistics)
  (:requirements :strips :typing)
  (:types
    package vehicle - thing
    truck plane - vehicle
    airport - place
    place city thing - object)
  (:predicates (at ?t - thing ?p - place) (in ?x - package ?v - vehicle) (in-city ?p - place ?c - city))
  (:action load
    :parameters (?x - package ?v - vehicle ?p - place)
    :precondition (and (at ?x ?p) (at ?v ?p))
    :effect (and (in ?x ?v) (not (at ?x ?p))))
  (:action unload
    :parameters (?x - package ?v - vehicle ?p - place)
    :precondition (and (in ?x ?v) (at ?v ?p))
    :effect (and (at ?x ?p) (not (in ?x ?v))))
  (:action drive
    :parameters (?t - truck ?from ?to - place ?c - city)
    :precondition (and (at ?t ?from) (in-city ?from ?c) (in-city ?to ?c))
    :effect (and (at ?t ?to) (not (at ?t ?from))))
  (:action fly
    :parameters (?a - plane ?from ?to - airport)
    :precondition (at ?a ?from)
    :effect (and (at ?a ?to) (not (at ?a ?from)))))
