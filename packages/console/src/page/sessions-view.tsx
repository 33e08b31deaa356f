import type { JSX } from 'preact'
import { printable } from 'signalbox/reports'
import { Empty, Heading } from '../page-kit/browser/parts.js'
import { count, span } from '../page-kit/browser/text.js'
import { useShared, type Shared } from './context.js'
import type { SessionRow } from './model.js'
import { KeyLink, Mode } from './parts.js'
import { hashOf } from './route.js'
import { nameOf, placeOf } from './text.js'
import { VirtualList } from './virtual-list.js'

/** Maximum number of keys that a confirmation names. */
const MAX_NAMED = 10

/** The sessions that hold or await keys. */
export function SessionsView(): JSX.Element {
  const { overview } = useShared()
  const rows = [...overview.sessions.values()].sort(
    (a, b) =>
      b.holds.length - a.holds.length ||
      b.awaits.length - a.awaits.length ||
      (nameOf(a.who) < nameOf(b.who) ? -1 : 1),
  )
  return (
    <>
      <Heading>Sessions</Heading>
      <p class="summary">{count(rows.length, 'session')} that hold or await a lock</p>
      {rows.length === 0 ? (
        <Empty>No sessions with locks or waiters</Empty>
      ) : (
        <VirtualList
          items={rows}
          label="Sessions"
          keyOf={({ who }) => who.session}
          heights={[60, 68]}
          row={({ who, holds, awaits }) => (
            <a class="session" href={hashOf({ view: 'session', session: who.session })}>
              <span class="who">
                <span class="name">{nameOf(who)}</span>
                <span class="place">{placeOf(who)}</span>
              </span>
              <span class="number">holds {holds.length.toLocaleString('en')}</span>
              <span class="number">awaits {awaits.length.toLocaleString('en')}</span>
            </a>
          )}
        />
      )}
    </>
  )
}

/** A session: the keys that it holds and awaits. */
export function SessionPage({ session }: { readonly session: string }): JSX.Element {
  const shared = useShared()
  const row = shared.overview.sessions.get(session)
  return (
    <>
      <p class="crumb">
        <a href="#/sessions">Sessions</a>
      </p>
      <Heading>{row ? nameOf(row.who) : printable(session)}</Heading>
      {row ? <Details shared={shared} row={row} /> : <p class="summary">No locks, no waits</p>}
    </>
  )
}

function Details({ shared, row }: { readonly shared: Shared; readonly row: SessionRow }): JSX.Element {
  const { now, model, propose } = shared
  const { who, holds, awaits } = row
  return (
    <>
      <p class="summary">
        {placeOf(who)} · session <span class="token">{who.session}</span>
      </p>
      {!model.readOnly && who.session !== '' && (
        <button type="button" class="quiet" onClick={() => propose(revocationOf(shared, row))}>
          Revoke this session …
        </button>
      )}
      <Keys
        verb="holds"
        title="Holds"
        parties={holds}
        keyOf={([key, { token }]) => `${key} ${token!}`}
        note={({ until }) => `lease left ${span(until! - now)}`}
      />
      <Keys
        verb="awaits"
        title="Awaits"
        parties={awaits}
        keyOf={([key, { since }], index) => `${key} ${since} ${index}`}
        note={({ since }) => `for ${span(now - since)}`}
      />
    </>
  )
}

/** The keys that a session holds or awaits, each with a note; nothing if there are none. */
function Keys({
  verb,
  title,
  parties,
  keyOf,
  note,
}: {
  readonly verb: string
  readonly title: string
  readonly parties: SessionRow['holds']
  readonly keyOf: (entry: SessionRow['holds'][number], index: number) => string
  readonly note: (party: SessionRow['holds'][number][1]) => string
}): JSX.Element | null {
  if (parties.length === 0) return null
  return (
    <section aria-labelledby={verb}>
      <h2 id={verb}>{title}</h2>
      <VirtualList
        items={parties}
        label={`Keys that it ${verb}`}
        keyOf={keyOf}
        heights={[48, 64]}
        row={([key, party]) => (
          <div class="entry">
            <KeyLink name={key} />
            <Mode claim={party.claim} />
            <span class="number">{note(party)}</span>
          </div>
        )}
      />
    </section>
  )
}

function revocationOf({ connection }: Shared, { who }: SessionRow): Parameters<Shared['propose']>[0] {
  return {
    title: `Revoke ${nameOf(who)}?`,
    losses({ overview }) {
      const { holds = [], awaits = [] } = overview.sessions.get(who.session) ?? {}
      return [
        `Only do this if the process is dead: ${placeOf(who)}. If it is alive, it may still work under its locks.`,
        holds.length > 0 ? `It loses ${named(holds.map(([key]) => key))}.` : 'It holds no locks.',
        ...(awaits.length > 0 ? [`It waits no longer for ${named(awaits.map(([key]) => key))}.`] : []),
      ]
    },
    verb: 'Revoke',
    async act() {
      const { requests } = (await connection.post('revoke', { session: who.session })) as { requests: number }
      return `Revoked ${nameOf(who)}: ${count(requests, 'request')}.`
    },
  }
}

function named(keys: readonly string[]): string {
  const shown = keys.slice(0, MAX_NAMED).map(printable).join(', ')
  return keys.length > MAX_NAMED ? `${shown} and ${keys.length - MAX_NAMED} more` : shown
}
