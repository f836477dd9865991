(define (domain puzzle)
  (:requirements :adl)
  (:types button)
  (:predicates (lit ?b - button) (dark ?b - button)
               (reaches ?b ?n - button))  ; itself, and its neighbours

  (:action press
    :parameters (?b - button)
    :effect (forall (?n - button)
              (when (reaches ?b ?n)
                (and (when (lit ?n) (and (dark ?n) (not (lit ?n))))
                     (when (not (lit ?n)) (and (lit ?n) (not (dark ?n)))))))))
