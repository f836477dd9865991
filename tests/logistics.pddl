; Trucks carry packages within a city, aeroplanes between the cities' airports.
(define (domain logistics)
  (:requirements :strips :typing)
  (:types place city thing - object
          package vehicle - thing
          truck aeroplane - vehicle)
  (:predicates (in-city ?p - place ?c - city) (has-airport ?p - place) (at ?x - thing ?p - place)
               (in ?x - package ?v - vehicle))
  (:action load
    :parameters (?x - package ?v - vehicle ?p - place)
    :precondition (and (at ?v ?p) (at ?x ?p))
    :effect (and (in ?x ?v) (not (at ?x ?p))))
  (:action unload
    :parameters (?x - package ?v - vehicle ?p - place)
    :precondition (and (at ?v ?p) (in ?x ?v))
    :effect (and (at ?x ?p) (not (in ?x ?v))))
  (:action drive
    :parameters (?t - truck ?from ?to - place ?c - city)
    :precondition (and (at ?t ?from) (in-city ?from ?c) (in-city ?to ?c))
    :effect (and (at ?t ?to) (not (at ?t ?from))))
  (:action fly
    :parameters (?a - aeroplane ?from ?to - place)
    :precondition (and (at ?a ?from) (has-airport ?from) (has-airport ?to))
    :effect (and (at ?a ?to) (not (at ?a ?from)))))
