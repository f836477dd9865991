; Two hands fill shots from dispensers, mix two of them in a shaker, shake, and pour the cocktail into clean shots.
(define (domain barman)
  (:requirements :strips :typing)
  (:types hand level beverage dispenser container - object
          ingredient cocktail - beverage
          shot shaker - container)
  (:predicates (on-table ?c - container) (holding ?h - hand ?c - container) (hand-empty ?h - hand)
               (empty ?c - container) (contains ?c - container ?b - beverage) (clean ?c - container)
               (used ?c - container ?b - beverage) (dispenses ?d - dispenser ?i - ingredient)
               (shaken ?s - shaker) (unshaken ?s - shaker) (level ?s - shaker ?l - level)
               (empty-level ?s - shaker ?l - level) (next ?l ?l2 - level)
               (first-part ?c - cocktail ?i - ingredient) (second-part ?c - cocktail ?i - ingredient))
  (:action grasp
    :parameters (?h - hand ?c - container)
    :precondition (and (on-table ?c) (hand-empty ?h))
    :effect (and (holding ?h ?c) (not (on-table ?c)) (not (hand-empty ?h))))
  (:action leave
    :parameters (?h - hand ?c - container)
    :precondition (holding ?h ?c)
    :effect (and (hand-empty ?h) (on-table ?c) (not (holding ?h ?c))))
  (:action fill-shot
    :parameters (?s - shot ?i - ingredient ?h ?other - hand ?d - dispenser)
    :precondition (and (holding ?h ?s) (hand-empty ?other) (dispenses ?d ?i) (empty ?s) (clean ?s))
    :effect (and (contains ?s ?i) (used ?s ?i) (not (empty ?s)) (not (clean ?s))))
  (:action refill-shot
    :parameters (?s - shot ?i - ingredient ?h ?other - hand ?d - dispenser)
    :precondition (and (holding ?h ?s) (hand-empty ?other) (dispenses ?d ?i) (empty ?s) (used ?s ?i))
    :effect (and (contains ?s ?i) (not (empty ?s))))
  (:action empty-shot
    :parameters (?h - hand ?s - shot ?b - beverage)
    :precondition (and (holding ?h ?s) (contains ?s ?b))
    :effect (and (empty ?s) (not (contains ?s ?b))))
  (:action clean-shot
    :parameters (?s - shot ?b - beverage ?h ?other - hand)
    :precondition (and (holding ?h ?s) (hand-empty ?other) (empty ?s) (used ?s ?b))
    :effect (and (clean ?s) (not (used ?s ?b))))
  (:action pour-into-clean-shaker
    :parameters (?s - shot ?i - ingredient ?k - shaker ?h - hand ?l ?more - level)
    :precondition (and (holding ?h ?s) (contains ?s ?i) (empty ?k) (clean ?k) (level ?k ?l) (next ?l ?more))
    :effect (and (empty ?s) (contains ?k ?i) (unshaken ?k) (level ?k ?more)
                 (not (contains ?s ?i)) (not (empty ?k)) (not (clean ?k)) (not (level ?k ?l))))
  (:action pour-into-used-shaker
    :parameters (?s - shot ?i - ingredient ?k - shaker ?h - hand ?l ?more - level)
    :precondition (and (holding ?h ?s) (contains ?s ?i) (unshaken ?k) (level ?k ?l) (next ?l ?more))
    :effect (and (empty ?s) (contains ?k ?i) (level ?k ?more) (not (contains ?s ?i)) (not (level ?k ?l))))
  (:action empty-shaker
    :parameters (?h - hand ?k - shaker ?b - cocktail ?l ?none - level)
    :precondition (and (holding ?h ?k) (contains ?k ?b) (shaken ?k) (level ?k ?l) (empty-level ?k ?none))
    :effect (and (empty ?k) (level ?k ?none) (not (shaken ?k)) (not (contains ?k ?b)) (not (level ?k ?l))))
  (:action clean-shaker
    :parameters (?h ?other - hand ?k - shaker)
    :precondition (and (holding ?h ?k) (hand-empty ?other) (empty ?k))
    :effect (clean ?k))
  (:action shake
    :parameters (?b - cocktail ?i ?i2 - ingredient ?k - shaker ?h ?other - hand)
    :precondition (and (holding ?h ?k) (hand-empty ?other) (contains ?k ?i) (contains ?k ?i2) (first-part ?b ?i)
                       (second-part ?b ?i2) (unshaken ?k))
    :effect (and (contains ?k ?b) (shaken ?k) (not (unshaken ?k)) (not (contains ?k ?i)) (not (contains ?k ?i2))))
  (:action pour-into-shot
    :parameters (?b - beverage ?s - shot ?h - hand ?k - shaker ?l ?less - level)
    :precondition (and (holding ?h ?k) (shaken ?k) (empty ?s) (clean ?s) (contains ?k ?b) (level ?k ?l) (next ?less ?l))
    :effect (and (contains ?s ?b) (level ?k ?less) (not (clean ?s)) (not (empty ?s)) (not (level ?k ?l)))))
