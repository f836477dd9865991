; Larger than anything in training: eight parcels and six places; the van comes back with an empty crate.
(define (problem round)
  (:domain delivery)
  (:objects
    p1 p2 p3 p4 p5 p6 p7 p8 crate - parcel
    depot mill farm inn forge school - place
    red - van)
  (:init
    (van-at red inn) (in crate red)
    (at p1 depot) (at p2 depot) (at p3 depot) (at p4 depot) (at p5 mill) (at p6 farm) (at p7 forge) (at p8 school)
    (addressed-to p1 mill) (addressed-to p2 farm) (addressed-to p3 inn) (addressed-to p4 forge)
    (addressed-to p5 school) (addressed-to p6 mill) (addressed-to p7 inn) (addressed-to p8 school))
  (:goal (and
    (delivered p1) (delivered p2) (delivered p3) (delivered p4)
    (delivered p5) (delivered p6) (delivered p7) (delivered p8))))
