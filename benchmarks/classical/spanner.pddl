; A man walks one way to a gate, picks up spanners, and tightens a nut with each; a spanner is used once.
(define (domain spanner)
  (:requirements :strips :typing)
  (:types place man nut spanner)
  (:predicates (man-at ?m - man ?p - place) (spanner-at ?s - spanner ?p - place) (nut-at ?n - nut ?p - place)
               (carrying ?m - man ?s - spanner) (usable ?s - spanner) (link ?from ?to - place)
               (tight ?n - nut) (loose ?n - nut))
  (:action walk
    :parameters (?m - man ?from ?to - place)
    :precondition (and (man-at ?m ?from) (link ?from ?to))
    :effect (and (man-at ?m ?to) (not (man-at ?m ?from))))
  (:action pick-up
    :parameters (?m - man ?s - spanner ?p - place)
    :precondition (and (man-at ?m ?p) (spanner-at ?s ?p))
    :effect (and (carrying ?m ?s) (not (spanner-at ?s ?p))))
  (:action tighten
    :parameters (?m - man ?s - spanner ?n - nut ?p - place)
    :precondition (and (man-at ?m ?p) (nut-at ?n ?p) (carrying ?m ?s) (usable ?s) (loose ?n))
    :effect (and (tight ?n) (not (loose ?n)) (not (usable ?s)))))
