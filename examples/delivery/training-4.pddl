; The van is full of something that nobody is waiting for, and the parcel that counts is here.
(define (problem delivery-training-4)
  (:domain delivery)
  (:objects book crate - parcel depot mill - place red - van)
  (:init (van-at red depot) (in crate red)
    (at book depot) (addressed-to book mill))
  (:goal (delivered book)))
