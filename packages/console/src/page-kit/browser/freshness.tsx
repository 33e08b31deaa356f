import type { ComponentChildren, JSX } from 'preact'
import { span, timeOf } from './text.js'

/** Whether the content of the page is current, and if not, the reason. */
export type Freshness =
  | { readonly state: 'live' | 'connecting' | 'locked' | 'ended' }
  /** @property since by the clock of the server. */
  | { readonly state: 'old'; readonly since: number | undefined; readonly reason: string }

const TEXTS: Readonly<Record<Freshness['state'], string>> = {
  live: 'Live',
  connecting: 'Connecting',
  locked: 'Locked',
  ended: 'Ended',
  old: 'Out of date',
}

interface StatusProperties {
  readonly state: Freshness['state']
  readonly children?: ComponentChildren
}

/** The freshness of the page in a word. */
export function Status({ state, children }: StatusProperties): JSX.Element {
  return (
    <p class={`status ${state}`} role="status">
      <span class="dot" aria-hidden="true" />
      {TEXTS[state]}
      {children}
    </p>
  )
}

interface OldProperties {
  readonly freshness: Extract<Freshness, { state: 'old' }>
  readonly now: number
}

/** The age of the page's content, and the reason. */
export function Old({ freshness: { since, reason }, now }: OldProperties): JSX.Element {
  return (
    <div class="old" role="alert">
      <p>
        <strong>{since === undefined ? 'No data yet.' : `This is the state of ${timeOf(since)}.`}</strong>{' '}
        Trying again every second. {/* It changes each second, which a screen reader should not repeat. */}
        {since !== undefined && <span aria-hidden="true">{span(now - since)} old.</span>}
      </p>
      <p>{reason}</p>
    </div>
  )
}
