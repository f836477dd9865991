; Trucks with room for so many packages, on roads.
(define (domain transport)
  (:requirements :strips :typing)
  (:types place size truck package)
  (:predicates (road ?from ?to - place) (truck-at ?t - truck ?p - place) (at ?x - package ?p - place)
               (in ?x - package ?t - truck) (room ?t - truck ?s - size) (next ?less ?more - size))
  (:action drive
    :parameters (?t - truck ?from ?to - place)
    :precondition (and (truck-at ?t ?from) (road ?from ?to))
    :effect (and (truck-at ?t ?to) (not (truck-at ?t ?from))))
  (:action load
    :parameters (?t - truck ?p - place ?x - package ?less ?more - size)
    :precondition (and (truck-at ?t ?p) (at ?x ?p) (next ?less ?more) (room ?t ?more))
    :effect (and (in ?x ?t) (room ?t ?less) (not (at ?x ?p)) (not (room ?t ?more))))
  (:action unload
    :parameters (?t - truck ?p - place ?x - package ?less ?more - size)
    :precondition (and (truck-at ?t ?p) (in ?x ?t) (next ?less ?more) (room ?t ?less))
    :effect (and (at ?x ?p) (room ?t ?more) (not (in ?x ?t)) (not (room ?t ?less)))))
