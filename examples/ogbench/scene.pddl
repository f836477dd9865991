(define (domain scene)
  (:requirements :strips :typing)
  (:types cube button place door - object spot table - place drawer window - door)
  (:predicates (free) (holding ?c - cube) (on ?c - cube ?p - place) (in ?c - cube ?d - drawer)
               (open ?d - door) (unopened ?d - door) (closed ?d - door) (unclosed ?d - door)  ; ajar is neither
               (locked ?d - door) (unlocked ?d - door) (locks ?b - button ?d - door))

  (:action pick
    :parameters (?c - cube ?p - place)
    :precondition (and (free) (on ?c ?p))
    :effect (and (holding ?c) (not (free)) (not (on ?c ?p))))

  (:action take
    :parameters (?c - cube ?d - drawer)
    :precondition (and (free) (in ?c ?d) (open ?d))
    :effect (and (holding ?c) (not (free)) (not (in ?c ?d))))

  (:action place
    :parameters (?c - cube ?p - place)
    :precondition (holding ?c)
    :effect (and (on ?c ?p) (free) (not (holding ?c))))

  (:action put
    :parameters (?c - cube ?d - drawer)
    :precondition (and (holding ?c) (open ?d))
    :effect (and (in ?c ?d) (free) (not (holding ?c))))

  (:action unlock
    :parameters (?d - door ?b - button)
    :precondition (and (free) (locks ?b ?d) (locked ?d))
    :effect (and (unlocked ?d) (not (locked ?d))))

  (:action lock
    :parameters (?d - door ?b - button)
    :precondition (and (free) (locks ?b ?d) (unlocked ?d))
    :effect (and (locked ?d) (not (unlocked ?d))))

  (:action pull-open
    :parameters (?d - drawer)
    :precondition (and (free) (unlocked ?d) (unopened ?d))
    :effect (and (open ?d) (unclosed ?d) (not (unopened ?d)) (not (closed ?d))))

  (:action push-closed
    :parameters (?d - drawer)
    :precondition (and (free) (unlocked ?d) (unclosed ?d))
    :effect (and (closed ?d) (unopened ?d) (not (unclosed ?d)) (not (open ?d))))

  (:action slide-open
    :parameters (?w - window)
    :precondition (and (free) (unlocked ?w) (unopened ?w))
    :effect (and (open ?w) (unclosed ?w) (not (unopened ?w)) (not (closed ?w))))

  (:action slide-closed
    :parameters (?w - window)
    :precondition (and (free) (unlocked ?w) (unclosed ?w))
    :effect (and (closed ?w) (unopened ?w) (not (unclosed ?w)) (not (open ?w)))))
