(define (problem colour-2)
  (:domain colour)
  (:objects
    a b - block
    red green blue - colour
    red-tray green-tray blue-tray - tray
    bench - table
    stand - platform
    knob - button)
  (:init
    (on a bench) (unknown a) (on b bench) (unknown b)
    (free stand) (gripper-free)
    (tray-colour red-tray red) (tray-colour green-tray green) (tray-colour blue-tray blue))
  (:goal (and (achieved-goal a) (achieved-goal b))))
