(define (problem night)
  (:domain camera)
  (:objects home jupiter mars moon saturn venus - target)
  (:init (pointing-at home))
  (:goal (and
    (image-of jupiter) (image-of mars) (image-of moon) (image-of saturn) (image-of venus) (pointing-at home))))
