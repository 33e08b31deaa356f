import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { printable } from 'signalbox/reports'
import { Empty, Heading } from '../page-kit/browser/parts.js'
import { count, span } from '../page-kit/browser/text.js'
import type { PartyView } from '../messages.js'
import { useShared } from './context.js'
import { lastingCycles, type LockRow } from './model.js'
import { hashOf } from './route.js'
import { modeOf, nameOf, placeOf } from './text.js'
import { VirtualList } from './virtual-list.js'

/** All keys in use; those that block the most waiters first. */
export function LocksView({ search }: { readonly search: string }): JSX.Element {
  const { model, overview, now } = useShared()
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const focus = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.target instanceof HTMLInputElement) return
      event.preventDefault()
      field.current!.focus()
    }
    addEventListener('keydown', focus)
    return () => removeEventListener('keydown', focus)
  }, [])
  const rows = search === '' ? overview.rows : overview.rows.filter(row => matches(row, search.toLowerCase()))
  return (
    <>
      <Heading>Locks</Heading>
      <p class="summary">
        {count(model.keys.size, 'key')} in use, {count(overview.holders, 'holder')},{' '}
        {count(overview.waiters, 'waiter')}
      </p>
      {lastingCycles(overview, now).length > 0 && (
        <p class="failure">
          <strong>Possible deadlock.</strong> <a href="#/waits">See who waits for whom</a>
        </p>
      )}
      <search>
        <label class="field">
          <span>Search keys, labels, hosts and sessions</span>
          <input
            ref={field}
            type="search"
            value={search}
            aria-keyshortcuts="/"
            autocomplete="off"
            spellcheck={false}
            onInput={({ currentTarget }) =>
              location.replace(hashOf({ view: 'locks', search: currentTarget.value }))
            }
          />
          <kbd aria-hidden="true">/</kbd>
        </label>
      </search>
      {rows.length === 0 ? (
        <Empty>{search === '' ? 'No locks in use' : 'No matching locks in use'}</Empty>
      ) : (
        <>
          <div class="lock head" aria-hidden="true">
            <span class="number">Blocks</span>
            <span>Key</span>
            <span>Holder</span>
            <span class="number">Waiting</span>
            <span class="number">Held for</span>
            <span class="number">Lease left</span>
          </div>
          <VirtualList
            items={rows}
            label="Keys in use"
            keyOf={({ view }) => view.key}
            heights={[60, 104]}
            row={row => <Row row={row} now={now} />}
          />
        </>
      )}
    </>
  )
}

function matches({ view: { key, holders, waiters } }: LockRow, search: string): boolean {
  const texts = [...holders, ...waiters].flatMap(({ label = '', host, session, pid }) => [
    label,
    host,
    session,
    String(pid),
  ])
  return [key, ...texts].some(text => text.toLowerCase().includes(search))
}

function Row({ row, now }: { readonly row: LockRow; readonly now: number }): JSX.Element {
  const {
    view: { key, holders, waiters },
    inTheWayOf,
  } = row
  const [holder, ...others] = holders
  const claim = (holder ?? waiters[0])!.claim
  return (
    <a class={`lock ${inTheWayOf > 0 ? 'blocking' : ''}`} href={hashOf({ view: 'key', key })}>
      <span class="number blocks">
        <span class="unseen">blocks </span>
        {inTheWayOf > 0 ? inTheWayOf.toLocaleString('en') : '–'}
      </span>
      <span class="what">
        <span class="key">{printable(key)}</span>
        <span class="mode">{modeOf(claim)}</span>
      </span>
      <span class="who">
        <span class="name">
          {holder ? nameOf(holder) : 'free, reserved for a waiter'}
          {others.length > 0 && <span class="more"> and {others.length} more</span>}
        </span>
        {holder && <span class="place">{placeOf(holder)}</span>}
      </span>
      <span class={waiters.length > 0 ? 'number waiting' : 'number waiting none'}>
        {waiters.length.toLocaleString('en')}
        <span class="unit"> waiting</span>
      </span>
      <span class="number held">
        {holder && (
          <>
            <span class="unit">held </span>
            {heldFor(holder, now)}
          </>
        )}
      </span>
      <span class="number lease">
        {holder && (
          <>
            <span class="unit">lease </span>
            {span(holder.until! - now)}
          </>
        )}
      </span>
    </a>
  )
}

/**
 * Formats the time for which a holder has held the lock. If the console did not see the grant, the time since the
 * request is the maximum.
 */
function heldFor({ heldSince, since }: PartyView, now: number): string {
  return heldSince === undefined ? `≤ ${span(now - since)}` : span(now - heldSince)
}
