; Vehicles with room for a few packages drive from any place to any other.
(define (domain transport)
  (:requirements :strips :typing)
  (:types size place thing - object
          vehicle package - thing)
  (:predicates (at ?x - thing ?p - place) (in ?x - package ?v - vehicle) (room ?v - vehicle ?s - size)
               (one-less ?s ?s2 - size))
  (:action drive
    :parameters (?v - vehicle ?from ?to - place)
    :precondition (at ?v ?from)
    :effect (and (at ?v ?to) (not (at ?v ?from))))
  (:action load
    :parameters (?v - vehicle ?p - place ?x - package ?less ?more - size)
    :precondition (and (at ?v ?p) (at ?x ?p) (one-less ?less ?more) (room ?v ?more))
    :effect (and (in ?x ?v) (room ?v ?less) (not (at ?x ?p)) (not (room ?v ?more))))
  (:action unload
    :parameters (?v - vehicle ?p - place ?x - package ?less ?more - size)
    :precondition (and (at ?v ?p) (in ?x ?v) (one-less ?less ?more) (room ?v ?less))
    :effect (and (at ?x ?p) (room ?v ?more) (not (in ?x ?v)) (not (room ?v ?less)))))
