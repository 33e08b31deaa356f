import { render, type JSX } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'
import { Old, Status } from '../../../../packages/console/src/page-kit/browser/freshness.js'
import { Brand, Empty, Heading, SkipLink } from '../../../../packages/console/src/page-kit/browser/parts.js'
import { count } from '../../../../packages/console/src/page-kit/browser/text.js'
import { printable } from 'signalbox/reports'
import type { AboutFrame, EndFrame, NowFrame } from '../frames.js'
import { TrainMap } from './map.js'
import { Run } from './run.js'
import { Busiest, Waits, Workers } from './tables.js'
import { clock, pace } from './text.js'

export function showApp(element: HTMLElement): void {
  document.title = 'Train tracker · Signalbox'
  let changed = (): void => undefined
  const run = new Run(() => changed())
  render(<App run={run} follow={listener => (changed = listener)} />, element)
}

interface Properties {
  readonly run: Run
  /** Sets the listener that is called when the run changes. */
  readonly follow: (listener: () => void) => void
}

function App({ run, follow }: Properties): JSX.Element {
  const [, setTurn] = useState(0)
  // Set before the first frame arrives: after the end of a run, no later frame would update the page.
  useLayoutEffect(() => follow(() => setTurn(turn => turn + 1)), [])
  const { about, now, end } = run
  const freshness = run.freshness()
  return (
    <div class="board">
      <SkipLink />
      <header>
        <Brand />
        <p class="engine">{about && printable(about.title)}</p>
        <Status state={freshness.state} />
      </header>
      <main id="main">
        {freshness.state === 'old' && <Old freshness={freshness} now={Date.now()} />}
        <Heading>Train tracker</Heading>
        {about && now ? (
          <>
            <Introduction about={about} />
            {end && <Result end={end} />}
            <Figures now={now} about={about} />
            <TrainMap diagram={about.diagram} locked={now.locked} trains={run.trains} />
            <div class="parts">
              <Waits waits={now.waits} />
              <Workers workers={now.workers} events={now.events} />
              <Busiest places={now.busiest} />
            </div>
          </>
        ) : (
          freshness.state === 'connecting' && <Empty>Loading …</Empty>
        )}
      </main>
    </div>
  )
}

/** Explains the page, and the comparison at the end of the run. */
function Introduction({
  about: { processes, speed, dwell, isLocked },
}: {
  readonly about: AboutFrame
}): JSX.Element {
  return (
    <>
      <p class="summary">
        {count(processes, 'worker process moves', 'worker processes move')} these trains.{' '}
        {isLocked
          ? 'A train needs the locks of the station that it leaves and of the one that it enters: when two trains ' +
            'meet at a station, one waits.'
          : 'They use no locks and no version checks: when two trains meet at a station, updates can be lost.'}
        {speed !== null && ` One second is ${pace(speed)} of the timetable`}
        {isLocked &&
          dwell > 0 &&
          `, and each lock is kept for ${Math.round(dwell)} ms, so that you can see it`}
        {speed !== null && '.'}
      </p>
      <p class="summary">
        At the end, all counts are compared with those of a run in one process. They agree only if no update
        was lost and none was made twice, even if workers were killed.
      </p>
    </>
  )
}

function Result({ end: { outcome, headline, lines } }: { readonly end: EndFrame }): JSX.Element {
  return (
    <section class={`result ${outcome}`} role="status">
      <h2>{headline}</h2>
      {lines.map(line => (
        <p key={line}>{printable(line)}</p>
      ))}
    </section>
  )
}

function Figures({ now, about }: { readonly now: NowFrame; readonly about: AboutFrame }): JSX.Element {
  const {
    messages,
    total,
    time,
    seconds,
    perSecond,
    running,
    allWaiting,
    kills,
    redelivered,
    alreadyApplied,
  } = now
  const figures: readonly (readonly [name: string, value: number | string, note?: string | undefined])[] = [
    time === null
      ? ['Duration', `${whole(seconds)} s`]
      : ['Timetable', clock(time), `after ${whole(seconds)} s`],
    ['Messages', whole(messages), total === null ? undefined : `of ${whole(total)}`],
    about.dwell > 0
      ? ['Trains', whole(running), `${whole(allWaiting)} waiting for a lock`]
      : ['Trains', whole(running), `${whole(perSecond)} messages per second`],
    ['Workers killed', whole(kills)],
    ['Delivered again', whole(redelivered), 'because a worker died'],
    ['Already committed', whole(alreadyApplied), 'of those, so skipped'],
  ]
  return (
    <dl class="figures">
      {figures.map(([name, value, note]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <strong>{value}</strong> {note !== undefined && <span class="hint">{note}</span>}
          </dd>
        </div>
      ))}
    </dl>
  )
}

function whole(number: number): string {
  return Math.round(number).toLocaleString('en')
}
