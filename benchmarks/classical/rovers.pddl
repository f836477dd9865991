; Rovers drive between waypoints, sample soil, and send what they found to the lander, if they see it.
(define (domain rovers)
  (:requirements :strips :typing)
  (:types rover waypoint store lander)
  (:predicates (at ?r - rover ?w - waypoint) (lander-at ?l - lander ?w - waypoint)
               (can-traverse ?r - rover ?from ?to - waypoint) (visible ?from ?to - waypoint)
               (store-of ?s - store ?r - rover) (empty ?s - store) (full ?s - store)
               (soil-at ?w - waypoint) (have-analysis ?r - rover ?w - waypoint) (sent ?w - waypoint))
  (:action navigate
    :parameters (?r - rover ?from ?to - waypoint)
    :precondition (and (at ?r ?from) (can-traverse ?r ?from ?to) (visible ?from ?to))
    :effect (and (at ?r ?to) (not (at ?r ?from))))
  (:action sample
    :parameters (?r - rover ?s - store ?w - waypoint)
    :precondition (and (at ?r ?w) (soil-at ?w) (store-of ?s ?r) (empty ?s))
    :effect (and (full ?s) (have-analysis ?r ?w) (not (empty ?s)) (not (soil-at ?w))))
  (:action drop
    :parameters (?r - rover ?s - store)
    :precondition (and (store-of ?s ?r) (full ?s))
    :effect (and (empty ?s) (not (full ?s))))
  (:action send
    :parameters (?r - rover ?l - lander ?w ?here ?there - waypoint)
    :precondition (and (at ?r ?here) (lander-at ?l ?there) (have-analysis ?r ?w) (visible ?here ?there))
    :effect (sent ?w)))
