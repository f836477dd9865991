; Camera: turn to a target, focus, take its image. Turning away loses the focus.
; A goal may also say where the camera ends up, and every image undoes that goal for a while.
(define (domain camera)
  (:requirements :strips :typing)
  (:types target)
  (:predicates
    (pointing-at ?t - target)
    (focused-on ?t - target)
    (image-of ?t - target))

  (:action turn
    :parameters (?from - target ?to - target)
    :precondition (pointing-at ?from)
    :effect (and (pointing-at ?to)
                 (not (pointing-at ?from)) (not (focused-on ?from))))

  (:action focus
    :parameters (?t - target)
    :precondition (pointing-at ?t)
    :effect (focused-on ?t))

  (:action take-image
    :parameters (?t - target)
    :precondition (and (pointing-at ?t) (focused-on ?t))
    :effect (image-of ?t)))
