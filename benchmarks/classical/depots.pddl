; Hoists stack crates on pallets and load them into trucks.
(define (domain depots)
  (:requirements :strips :typing)
  (:types place thing - object
          truck hoist surface - thing
          pallet crate - surface)
  (:predicates (at ?t - thing ?p - place) (on ?c - crate ?s - surface) (in ?c - crate ?t - truck)
               (lifting ?h - hoist ?c - crate) (available ?h - hoist) (clear ?s - surface))
  (:action drive
    :parameters (?t - truck ?from ?to - place)
    :precondition (at ?t ?from)
    :effect (and (at ?t ?to) (not (at ?t ?from))))
  (:action lift
    :parameters (?h - hoist ?c - crate ?s - surface ?p - place)
    :precondition (and (at ?h ?p) (available ?h) (at ?c ?p) (on ?c ?s) (clear ?c))
    :effect (and (lifting ?h ?c) (clear ?s)
                 (not (at ?c ?p)) (not (clear ?c)) (not (available ?h)) (not (on ?c ?s))))
  (:action drop
    :parameters (?h - hoist ?c - crate ?s - surface ?p - place)
    :precondition (and (at ?h ?p) (at ?s ?p) (clear ?s) (lifting ?h ?c))
    :effect (and (available ?h) (at ?c ?p) (clear ?c) (on ?c ?s) (not (lifting ?h ?c)) (not (clear ?s))))
  (:action load
    :parameters (?h - hoist ?c - crate ?t - truck ?p - place)
    :precondition (and (at ?h ?p) (at ?t ?p) (lifting ?h ?c))
    :effect (and (in ?c ?t) (available ?h) (not (lifting ?h ?c))))
  (:action unload
    :parameters (?h - hoist ?c - crate ?t - truck ?p - place)
    :precondition (and (at ?h ?p) (at ?t ?p) (available ?h) (in ?c ?t))
    :effect (and (lifting ?h ?c) (not (in ?c ?t)) (not (available ?h)))))
