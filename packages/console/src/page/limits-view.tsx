import type { JSX } from 'preact'
import { printable } from 'signalbox/reports'
import { Empty, Heading } from '../page-kit/browser/parts.js'
import { count, period, span } from '../page-kit/browser/text.js'
import type { LimitView, LimiterView } from '../messages.js'
import { useShared } from './context.js'
import { nameOf } from './text.js'

/** Maximum number of limiters that are shown. */
const MAX_SHOWN = 500

/** The rate limiters in use. */
export function LimitsView(): JSX.Element {
  const { model, overview, now } = useShared()
  const { limiters } = model
  return (
    <>
      <Heading>Limits</Heading>
      <p class="summary">
        {count(limiters.length, 'limiter')} in use
        {limiters.length > MAX_SHOWN && `; the first ${MAX_SHOWN} are shown`}
      </p>
      {limiters.length === 0 ? (
        <Empty>No limiters in use</Empty>
      ) : (
        <ul class="cards">
          {limiters.slice(0, MAX_SHOWN).map(limiter => (
            <li class="card" key={`${limiter.name}\0${limiter.key ?? ''}`}>
              <h2>
                <span class="key">{printable(limiter.name)}</span>
                {limiter.key !== undefined && (
                  <>
                    {' '}
                    <span class="mode">key {printable(limiter.key)}</span>
                  </>
                )}
              </h2>
              {limiter.limits.map((limit, index) => (
                <Limit key={index} limit={limit} now={now} />
              ))}
              <Waiting limiter={limiter} now={now} nameOfSession={id => nameIn(overview.sessions, id)} />
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

function nameIn(sessions: ReturnType<typeof useShared>['overview']['sessions'], id: string): string {
  const row = sessions.get(id)
  return row ? nameOf(row.who) : printable(id)
}

function Limit({ limit, now }: { readonly limit: LimitView; readonly now: number }): JSX.Element {
  const { limit: max, per, window, timeZone, unit, used, remaining, readyAt } = limit
  const kind = window === 'sliding' ? '' : `, ${window}${timeZone === '' ? '' : ` ${timeZone}`}`
  return (
    <div class="limit">
      <p>
        {max.toLocaleString('en')} {unit !== undefined && `${printable(unit)} `}per {period(per)}
        {kind}
      </p>
      <meter min={0} max={max} high={max * 0.8} optimum={0} value={Math.min(used, max)} aria-label="used" />
      <p class="hint">
        {used.toLocaleString('en')} used, {remaining.toLocaleString('en')} free
        {readyAt !== undefined && readyAt > now && `, next permit returns in ${span(readyAt - now)}`}
      </p>
    </div>
  )
}

interface WaitingProperties {
  readonly limiter: LimiterView
  readonly now: number
  readonly nameOfSession: (id: string) => string
}

function Waiting({ limiter, now, nameOfSession }: WaitingProperties): JSX.Element {
  const { pausedUntil, waiting } = limiter
  return (
    <>
      {pausedUntil !== undefined && pausedUntil > now && (
        <p class="warning">Paused for {span(pausedUntil - now)} more</p>
      )}
      {waiting.length > 0 && (
        <p>
          {count(waiting.length, 'session')} waited in the last seconds:{' '}
          {waiting.slice(0, 10).map(nameOfSession).join(', ')}
        </p>
      )}
    </>
  )
}
