(define (problem gacha-3)
  (:domain gacha)
  (:objects
    red green blue - colour
    red-tray green-tray blue-tray - tray
    machine - box
    knob - button)
  (:init
    (clear machine) (closed machine) (gripper-free)
    (tray-colour red-tray red) (tray-colour green-tray green) (tray-colour blue-tray blue))
  (:goal (and (achieved-goal red) (achieved-goal blue))))
