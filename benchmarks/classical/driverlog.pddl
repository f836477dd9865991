; Drivers walk on paths and drive trucks on roads.
(define (domain driverlog)
  (:requirements :strips :typing)
  (:types driver truck item - thing  place)
  (:predicates (at ?t - thing ?p - place) (in ?x - item ?t - truck) (driving ?d - driver ?t - truck)
               (road ?from ?to - place) (path ?from ?to - place) (empty ?t - truck))
  (:action load
    :parameters (?x - item ?t - truck ?p - place)
    :precondition (and (at ?t ?p) (at ?x ?p))
    :effect (and (in ?x ?t) (not (at ?x ?p))))
  (:action unload
    :parameters (?x - item ?t - truck ?p - place)
    :precondition (and (at ?t ?p) (in ?x ?t))
    :effect (and (at ?x ?p) (not (in ?x ?t))))
  (:action get-in
    :parameters (?d - driver ?t - truck ?p - place)
    :precondition (and (at ?t ?p) (at ?d ?p) (empty ?t))
    :effect (and (driving ?d ?t) (not (at ?d ?p)) (not (empty ?t))))
  (:action get-out
    :parameters (?d - driver ?t - truck ?p - place)
    :precondition (and (at ?t ?p) (driving ?d ?t))
    :effect (and (at ?d ?p) (empty ?t) (not (driving ?d ?t))))
  (:action drive
    :parameters (?t - truck ?from ?to - place ?d - driver)
    :precondition (and (at ?t ?from) (driving ?d ?t) (road ?from ?to))
    :effect (and (at ?t ?to) (not (at ?t ?from))))
  (:action walk
    :parameters (?d - driver ?from ?to - place)
    :precondition (and (at ?d ?from) (path ?from ?to))
    :effect (and (at ?d ?to) (not (at ?d ?from)))))
