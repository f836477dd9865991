; Satellites turn to targets, and their instruments must have power and be calibrated before they take images.
(define (domain satellite)
  (:requirements :strips :typing)
  (:types satellite instrument mode target)
  (:predicates (on-board ?i - instrument ?s - satellite) (supports ?i - instrument ?m - mode)
               (pointing ?s - satellite ?t - target) (power-available ?s - satellite) (power-on ?i - instrument)
               (calibrated ?i - instrument) (have-image ?t - target ?m - mode)
               (calibration-target ?i - instrument ?t - target))
  (:action turn
    :parameters (?s - satellite ?new ?old - target)
    :precondition (and (pointing ?s ?old) (not (= ?new ?old)))
    :effect (and (pointing ?s ?new) (not (pointing ?s ?old))))
  (:action switch-on
    :parameters (?i - instrument ?s - satellite)
    :precondition (and (on-board ?i ?s) (power-available ?s))
    :effect (and (power-on ?i) (not (calibrated ?i)) (not (power-available ?s))))
  (:action switch-off
    :parameters (?i - instrument ?s - satellite)
    :precondition (and (on-board ?i ?s) (power-on ?i))
    :effect (and (power-available ?s) (not (power-on ?i))))
  (:action calibrate
    :parameters (?s - satellite ?i - instrument ?t - target)
    :precondition (and (on-board ?i ?s) (calibration-target ?i ?t) (pointing ?s ?t) (power-on ?i))
    :effect (calibrated ?i))
  (:action take-image
    :parameters (?s - satellite ?t - target ?i - instrument ?m - mode)
    :precondition (and (calibrated ?i) (on-board ?i ?s) (supports ?i ?m) (power-on ?i) (pointing ?s ?t))
    :effect (have-image ?t ?m)))
