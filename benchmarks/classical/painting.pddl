; Robots on a grid paint the tile above or below them, in the colour that they have, and never stand on a painted one.
(define (domain painting)
  (:requirements :strips :typing)
  (:types robot tile colour)
  (:predicates (robot-at ?r - robot ?t - tile) (up ?from ?to - tile) (right ?from ?to - tile) (clear ?t - tile)
               (painted ?t - tile ?c - colour) (has ?r - robot ?c - colour))
  (:action change
    :parameters (?r - robot ?old ?new - colour)
    :precondition (has ?r ?old)
    :effect (and (has ?r ?new) (not (has ?r ?old))))
  (:action paint-up
    :parameters (?r - robot ?above ?here - tile ?c - colour)
    :precondition (and (has ?r ?c) (robot-at ?r ?here) (up ?here ?above) (clear ?above))
    :effect (and (painted ?above ?c) (not (clear ?above))))
  (:action move-up
    :parameters (?r - robot ?from ?to - tile)
    :precondition (and (robot-at ?r ?from) (up ?from ?to) (clear ?to))
    :effect (and (robot-at ?r ?to) (clear ?from) (not (robot-at ?r ?from)) (not (clear ?to))))
  (:action move-down
    :parameters (?r - robot ?from ?to - tile)
    :precondition (and (robot-at ?r ?from) (up ?to ?from) (clear ?to))
    :effect (and (robot-at ?r ?to) (clear ?from) (not (robot-at ?r ?from)) (not (clear ?to))))
  (:action move-right
    :parameters (?r - robot ?from ?to - tile)
    :precondition (and (robot-at ?r ?from) (right ?from ?to) (clear ?to))
    :effect (and (robot-at ?r ?to) (clear ?from) (not (robot-at ?r ?from)) (not (clear ?to)))))
