; A robot on a map, some of whose places are locked; a lock opens to keys of its shape.
(define (domain keys)
  (:requirements :strips :typing :negative-preconditions)
  (:types place key shape)
  (:predicates (linked ?from ?to - place) (robot-at ?p - place) (at ?k - key ?p - place) (locked ?p - place)
               (key-shape ?k - key ?s - shape) (lock-shape ?p - place ?s - shape) (holding ?k - key) (hand-empty))
  (:action move
    :parameters (?from ?to - place)
    :precondition (and (robot-at ?from) (linked ?from ?to) (not (locked ?to)))
    :effect (and (robot-at ?to) (not (robot-at ?from))))
  (:action unlock
    :parameters (?here ?there - place ?k - key ?s - shape)
    :precondition (and (robot-at ?here) (linked ?here ?there) (locked ?there) (holding ?k) (key-shape ?k ?s)
                       (lock-shape ?there ?s))
    :effect (not (locked ?there)))
  (:action pick
    :parameters (?p - place ?k - key)
    :precondition (and (robot-at ?p) (at ?k ?p) (hand-empty))
    :effect (and (holding ?k) (not (at ?k ?p)) (not (hand-empty))))
  (:action put
    :parameters (?p - place ?k - key)
    :precondition (and (robot-at ?p) (holding ?k))
    :effect (and (at ?k ?p) (hand-empty) (not (holding ?k))))
  (:action swap
    :parameters (?p - place ?k ?other - key)
    :precondition (and (robot-at ?p) (holding ?k) (at ?other ?p))
    :effect (and (holding ?other) (at ?k ?p) (not (holding ?k)) (not (at ?other ?p)))))
