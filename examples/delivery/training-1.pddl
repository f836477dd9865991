; Load, drive, deliver.
(define (problem delivery-training-1)
  (:domain delivery)
  (:objects book - parcel depot mill - place red - van)
  (:init (van-at red depot) (empty red) (at book depot) (addressed-to book mill))
  (:goal (delivered book)))
