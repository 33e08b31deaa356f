import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { printable } from 'signalbox/reports'
import { Empty, Heading } from '../page-kit/browser/parts.js'
import { count, span, timeOf } from '../page-kit/browser/text.js'
import type { KeyEvent, PartyView } from '../messages.js'
import { useShared, type Shared } from './context.js'
import { Mode, SessionLink } from './parts.js'
import { nameOf, placeOf } from './text.js'
import { VirtualList } from './virtual-list.js'

/** Maximum number of holders and of events that are shown. */
const MAX_SHOWN = 200
/** Number of events that are shown before the user asks for more. */
const MAX_AT_FIRST = 6

/** A key: its holders, its waiters and its timeline. */
export function KeyPage({ name }: { readonly name: string }): JSX.Element {
  const shared = useShared()
  const { model, now } = shared
  const [isWhole, setWhole] = useState(false)
  const view = model.keys.get(name)
  const events = useMemo(
    () =>
      model.events
        .filter(({ key }) => key === name)
        .slice(-MAX_SHOWN)
        .reverse(),
    [model.events, name],
  )
  const holders = view?.holders ?? []
  const waiters = view?.waiters ?? []
  return (
    <>
      <p class="crumb">
        <a href="#/locks">Locks</a>
      </p>
      <Heading>
        <span class="key">{printable(name)}</span>
      </Heading>
      <p class="summary">
        {view
          ? `${count(holders.length, 'holder')}, ${count(waiters.length, 'waiter')}`
          : 'No holders, no waiters'}
      </p>
      {holders.length > 0 && (
        <section aria-labelledby="holders">
          <h2 id="holders">Held by</h2>
          <ul class="cards">
            {holders.slice(0, MAX_SHOWN).map(holder => (
              <li class="card" key={holder.token}>
                <Holder shared={shared} name={name} holder={holder} />
              </li>
            ))}
          </ul>
        </section>
      )}
      <div class="columns">
        {waiters.length > 0 && (
          <section aria-labelledby="waiters">
            <h2 id="waiters">Waiting, in this order</h2>
            <VirtualList
              items={waiters}
              label="Waiters"
              keyOf={({ session, since }, index) => `${session} ${since} ${index}`}
              heights={[56, 64]}
              row={(waiter, index) => (
                <div class="waiter">
                  <span class="number place">{index + 1}</span>
                  <SessionLink who={waiter} />
                  {waiter.claim.mode !== 'exclusive' && <Mode claim={waiter.claim} />}
                  <span class="number time">for {span(now - waiter.since)}</span>
                </div>
              )}
            />
          </section>
        )}
        <section aria-labelledby="timeline">
          <h2 id="timeline">Timeline</h2>
          <p class="hint">
            Since {timeOf(model.since)}, when this console began to look. It looks once a second, so what ends
            sooner may be missing.
          </p>
          {events.length === 0 ? (
            <Empty>No events yet.</Empty>
          ) : (
            <ol class="timeline">
              {(isWhole ? events : events.slice(0, MAX_AT_FIRST)).map(event => (
                <li key={event.number} class={event.kind.replaceAll(' ', '-')}>
                  <time>{timeOf(event.at)}</time>
                  <span>{sentence(event)}</span>
                </li>
              ))}
            </ol>
          )}
          {!isWhole && events.length > MAX_AT_FIRST && (
            <button type="button" onClick={() => setWhole(true)}>
              Show {events.length - MAX_AT_FIRST} more
            </button>
          )}
        </section>
      </div>
    </>
  )
}

interface HolderProperties {
  readonly shared: Shared
  readonly name: string
  readonly holder: PartyView
}

function Holder({ shared, name, holder }: HolderProperties): JSX.Element {
  const { now, model, propose } = shared
  const { heldSince, since, until, token } = holder
  return (
    <>
      <SessionLink who={holder} />
      <dl>
        <div>
          <dt>Mode</dt>
          <dd>
            <Mode claim={holder.claim} />
          </dd>
        </div>
        <div>
          <dt>{heldSince === undefined ? 'Asked for it' : 'Held for'}</dt>
          <dd>{heldSince === undefined ? `${span(now - since)} ago` : span(now - heldSince)}</dd>
        </div>
        <div>
          <dt>Lease left</dt>
          <dd>{span(until! - now)}</dd>
        </div>
        <div>
          <dt>Token</dt>
          <dd class="token">{token}</dd>
        </div>
      </dl>
      {!model.readOnly && holder.session !== '' && (
        <button type="button" class="quiet" onClick={() => propose(releaseOf(shared, name, holder))}>
          Release …
        </button>
      )}
    </>
  )
}

function releaseOf(
  { connection }: Shared,
  name: string,
  holder: PartyView,
): Parameters<Shared['propose']>[0] {
  const who = `${nameOf(holder)} (${placeOf(holder)})`
  return {
    title: `Release ${printable(name)}?`,
    losses({ model, overview }) {
      const holds = overview.sessions.get(holder.session)?.holds ?? []
      const keys = holds.filter(([, { token }]) => token === holder.token).map(([key]) => key)
      if (!keys.includes(name)) return [`${who} does not hold this lock any more.`]
      const together = keys.filter(key => key !== name)
      const next = model.keys.get(name)?.waiters[0]
      return [
        `${who} loses the lock while it may still work under it, and learns that it was lost.`,
        ...(together.length > 0
          ? [`Its grant also has ${together.map(printable).join(', ')}, which it loses too.`]
          : []),
        next ? `${nameOf(next)} (${placeOf(next)}) is next in the queue.` : 'There are no waiters.',
      ]
    },
    verb: 'Release',
    async act() {
      await connection.post('release', { key: name, token: holder.token })
      return `Released ${printable(name)}.`
    },
  }
}

/** Describes an event in a sentence. */
function sentence({ kind, who, from, waited, held }: KeyEvent): string {
  const name = `${nameOf(who)} (${placeOf(who)})`
  const afterWait = waited === undefined ? '' : `, which had waited ${span(waited)}`
  const afterHold = held === undefined ? '' : ` after ${span(held)}`
  switch (kind) {
    case 'granted':
      return `granted to ${name}${afterWait}`
    case 'handed over':
      return `handed over from ${nameOf(from!)}${afterHold} to ${name}${afterWait}`
    case 'released':
      return `${name} released it${afterHold}`
    case 'expired':
      return `the lease of ${name} expired${afterHold}: its holder has lost it`
    case 'released by hand':
      return `an operator took it from ${name}${afterHold}`
    case 'revoked by hand':
      return `an operator revoked the session of ${name}${afterHold}`
    case 'left':
      return `${name} waits no longer, after ${span(waited!)}`
  }
}
