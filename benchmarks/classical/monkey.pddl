; A monkey, a box and bananas, with constants for the height at which one is.
(define (domain monkey)
  (:requirements :strips :typing :equality :negative-preconditions)
  (:types place height)
  (:constants low high - height)
  (:predicates (at ?p - place) (level ?h - height) (box-at ?p - place) (bananas-at ?p - place) (have-bananas))
  (:action go
    :parameters (?from ?to - place)
    :precondition (and (at ?from) (level low) (not (= ?from ?to)))
    :effect (and (at ?to) (not (at ?from))))
  (:action push
    :parameters (?from ?to - place)
    :precondition (and (at ?from) (box-at ?from) (level low) (not (bananas-at ?from)))
    :effect (and (at ?to) (box-at ?to) (not (at ?from)) (not (box-at ?from))))
  (:action climb
    :parameters (?p - place)
    :precondition (and (at ?p) (box-at ?p) (level low))
    :effect (and (level high) (not (level low))))
  (:action get-down
    :parameters ()
    :precondition (level high)
    :effect (and (level low) (not (level high))))
  (:action grab
    :parameters (?p - place)
    :precondition (and (at ?p) (bananas-at ?p) (level high) (not (have-bananas)))
    :effect (have-bananas))
  (:action eat
    :parameters ()
    :precondition (and (have-bananas) (level low))
    :effect (not (have-bananas))))
