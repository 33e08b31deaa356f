import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { printable } from 'signalbox/reports'
import type { LockUser } from '../../lock-in-use.js'
import type { LockedStation } from '../frames.js'
import type { Diagram } from '../diagram.js'
import { Plan, UNSEEN } from './plan.js'
import { named } from './text.js'
import type { Trains } from './trains.js'

const RADIUS = 6
/** Maximum number of waiters that are named at a station. */
const MAX_WAITERS = 2

interface Properties {
  readonly diagram: Diagram
  readonly locked: readonly LockedStation[]
  readonly trains: Trains
}

export function TrainMap({ diagram, locked, trains }: Properties): JSX.Element {
  const figure = useRef<HTMLElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const svg = useRef<SVGSVGElement>(null)
  const [width, setWidth] = useState(0)
  const [selected, setSelected] = useState<{ readonly station: number; readonly name: string }>()
  useLayoutEffect(() => {
    const resized = new ResizeObserver(() => setWidth(svg.current!.parentElement!.clientWidth))
    resized.observe(figure.current!)
    return () => resized.disconnect()
  }, [])
  const plan = useMemo(() => new Plan(diagram, Math.max(width, 1)), [diagram, width])
  const order = useMemo(() => plan.order, [plan])
  const names = useMemo(() => plan.named, [plan])
  useEffect(() => trains.show(canvas.current!, plan), [plan])
  const { tracks, stations, left } = diagram
  // The diagram of another run may not have this station.
  const chosen = selected && stations[selected.station]?.name === selected.name ? selected.station : undefined
  const locks = new Map(locked.map(lock => [lock.station, lock]))
  const step = (event: KeyboardEvent): void => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key]
    if (by === undefined) return
    event.preventDefault()
    const at = order.indexOf(chosen ?? -1) + by
    const next = order[(at + order.length) % order.length]!
    svg.current!.querySelectorAll<SVGElement>('.station')[next]!.focus()
  }
  const [forward, backward] = plan.isUpright ? ['down', 'up'] : ['to the right', 'to the left']
  return (
    <figure class="map" ref={figure}>
      <div class="canvas">
        <svg
          ref={svg}
          width={plan.width}
          height={plan.height}
          role="group"
          aria-label="Stations. Use the arrow keys to select one."
          onKeyDown={step}
        >
          {tracks.map(([one, other]) => (
            <line
              key={`${one} ${other}`}
              class="track"
              x1={plan.points[one]!.x}
              y1={plan.points[one]!.y}
              x2={plan.points[other]!.x}
              y2={plan.points[other]!.y}
            />
          ))}
          {stations.map(({ name }, index) => {
            const choose = (): void => setSelected({ station: index, name })
            const lock = locks.get(index)
            const isNamed = names.has(index) || index === chosen
            return (
              <g
                key={index}
                class={`station${lock ? ' locked' : ''}${index === chosen ? ' chosen' : ''}`}
                transform={`translate(${plan.points[index]!.x} ${plan.points[index]!.y})`}
                tabindex={index === (chosen ?? order[0]) ? 0 : -1}
                role="button"
                aria-label={printable(name)}
                aria-pressed={index === chosen}
                onClick={choose}
                onFocus={choose}
              >
                <circle class="hit" r={2 * RADIUS} />
                <circle r={RADIUS} />
                {isNamed && (
                  <text transform={plan.isUpright ? 'translate(16 4)' : 'translate(6 -12) rotate(-40)'}>
                    {printable(name)}
                  </text>
                )}
              </g>
            )
          })}
          {locked.map(({ station, waiters }) => {
            const { x, y } = plan.points[station] ?? UNSEEN
            return (
              <text
                key={station}
                class="waits"
                aria-hidden="true"
                transform={
                  plan.isUpright
                    ? `translate(${x - 52} ${y + 4})`
                    : `translate(${x + 9} ${y + 20}) rotate(40)`
                }
              >
                {shortened(waiters)}
              </text>
            )
          })}
        </svg>
        <canvas ref={canvas} aria-hidden="true" />
      </div>
      <figcaption>
        <span class="forward">●</span> train {forward} <span class="backward">●</span> train {backward}{' '}
        <span class="waiting">◎</span> waits for a lock <span class="lock">●</span> station with a lock in use
        {left > 0 && `. ${left.toLocaleString('en')} stations with fewer stops are not shown`}
      </figcaption>
      <p class="chosen-station" role="status">
        {chosen === undefined ? (
          'Select a station to see its locks.'
        ) : (
          <Station name={stations[chosen]!.name} lock={locks.get(chosen)} />
        )}
      </p>
    </figure>
  )
}

function Station({
  name,
  lock,
}: {
  readonly name: string
  readonly lock: LockedStation | undefined
}): JSX.Element {
  const list = (users: readonly LockUser[]): string => users.map(named).join(', ')
  return (
    <>
      <strong>{printable(name)}</strong>:{' '}
      {lock && lock.holders.length > 0 ? `locked by ${list(lock.holders)}` : 'not locked'}
      {lock && lock.waiters.length > 0 && `; waiting: ${list(lock.waiters)}`}
    </>
  )
}

/** Returns the first waiters and the number of the others. */
function shortened(waiters: readonly LockUser[]): string {
  const shown = waiters.slice(0, MAX_WAITERS).map(({ train, who }) => train ?? who)
  return `${printable(shown.join(', '))}${waiters.length > MAX_WAITERS ? ` +${waiters.length - MAX_WAITERS}` : ''}`
}
