; StickButton2D: press all buttons. Those on the table are out of the robot's reach, but not of the stick's.
(define (domain stick-button)
  (:requirements :strips :typing)
  (:types rectangle circle)
  (:predicates (free) (lying ?s - rectangle) (holding ?s - rectangle) (near ?b - circle) (far ?b - circle) (pressed ?b - circle))

  (:action pick
    :parameters (?s - rectangle)
    :precondition (and (free) (lying ?s))
    :effect (and (holding ?s) (not (free)) (not (lying ?s))))

  (:action press
    :parameters (?b - circle ?s - rectangle)
    :precondition (and (near ?b) (holding ?s))
    :effect (pressed ?b))

  (:action press-with
    :parameters (?b - circle ?s - rectangle)
    :precondition (and (far ?b) (holding ?s))
    :effect (pressed ?b)))
