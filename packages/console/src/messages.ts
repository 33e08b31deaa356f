import type { Claim } from 'signalbox/reports'

/** A holder of a key or a waiter for it, as the page shows it. Times are milliseconds since 1970. */
export interface PartyView {
  readonly session: string
  readonly host: string
  readonly pid: number
  readonly label: string | undefined
  readonly claim: Claim
  /** Time of the request. */
  readonly since: number
  /** For a holder: the token as text, because it exceeds the safe integers. */
  readonly token?: string
  /** For a holder: time of the grant, if the console saw it. */
  readonly heldSince?: number
  /** For a holder: time at which its lease expires without a renewal. */
  readonly until?: number
}

/** A key in use. */
export interface KeyView {
  readonly key: string
  readonly holders: readonly PartyView[]
  /** In the order in which they will get the lock. */
  readonly waiters: readonly PartyView[]
}

/** A limit of a limiter. */
export interface LimitView {
  readonly limit: number
  /** Milliseconds. */
  readonly per: number
  /** `sliding`, `calendar` or `smooth`. */
  readonly window: string
  readonly timeZone: string
  /** What it counts; left out for calls. */
  readonly unit?: string | undefined
  readonly used: number
  readonly remaining: number
  /** Time at which the next permit returns; undefined if none is in use. */
  readonly readyAt: number | undefined
}

/** A limiter in use, or one of its keys. */
export interface LimiterView {
  readonly name: string
  readonly key: string | undefined
  readonly limits: readonly LimitView[]
  readonly pausedUntil: number | undefined
  /** The sessions that had to wait for a permit. */
  readonly waiting: readonly string[]
}

/** The session that an event is about. */
export type Who = Pick<PartyView, 'session' | 'host' | 'pid' | 'label'>

/** An event of a key between two looks. Durations are in milliseconds. */
export interface KeyEvent {
  /** Increases with each event. */
  readonly number: number
  readonly at: number
  readonly key: string
  /**
   * `granted`: `who` got the lock; `handed over`: it got the lock from `from`; `released`: `who` no longer holds it;
   * `expired`: its lease ended without a renewal; `released by hand` and `revoked by hand`: an operator took it away
   * with this console; `left`: `who` stopped waiting without getting the lock.
   */
  readonly kind:
    | 'granted'
    | 'handed over'
    | 'released'
    | 'expired'
    | 'released by hand'
    | 'revoked by hand'
    | 'left'
  readonly who: Who
  readonly from?: Who
  /** Duration of the wait of `who`. */
  readonly waited?: number
  /**
   * Time for which the holder that lost or released the lock had held it; undefined if it got the lock before the first
   * look.
   */
  readonly held?: number
}

/** The complete state that the page shows. */
export interface StateMessage {
  readonly type: 'state'
  /** Time at which the engine was asked. */
  readonly at: number
  /** The engine as its URL names it, without passwords. */
  readonly engine: string
  readonly readOnly: boolean
  readonly hasDoctor: boolean
  /** Beginning of the timeline. */
  readonly since: number
  readonly keys: readonly KeyView[]
  readonly limiters: readonly LimiterView[]
  readonly events: readonly KeyEvent[]
}

/** The changes since the previous message. */
export interface ChangeMessage {
  readonly type: 'change'
  readonly at: number
  readonly keys: readonly KeyView[]
  /** Keys that are no longer in use. */
  readonly gone: readonly string[]
  /** All limiters, if one has changed. */
  readonly limiters?: readonly LimiterView[]
  readonly events: readonly KeyEvent[]
}

/** The engine did not answer, or rejected the request. */
export interface FaultMessage {
  readonly type: 'fault'
  readonly at: number
  readonly text: string
}

/** A message from the server to the page. */
export type Message = StateMessage | ChangeMessage | FaultMessage

/** A value in a list. */
export type ValueRow =
  | {
      readonly key: string
      readonly version: number
      /** The beginning of its JSON. */
      readonly json: string
      /** Number of characters of the whole JSON. */
      readonly length: number
      /** Time of the write, in milliseconds since 1970; undefined if the engine does not record it. */
      readonly changed: number | undefined
      readonly failure?: undefined
    }
  | {
      readonly key: string
      /** The reason why it can't be read. */
      readonly failure: string
    }

/** The names of the stores that have values, in the order of the engine. */
export interface StoreNames {
  readonly names: readonly string[]
  readonly hasMore: boolean
}

/** A part of a store's values. */
export interface ValuePage {
  readonly rows: readonly ValueRow[]
  readonly hasMore: boolean
}

/** One value. */
export type ValueView =
  | {
      readonly found: true
      readonly version: number
      /** The beginning of its JSON, indented. */
      readonly json: string
      /** Number of characters of the whole. */
      readonly length: number
    }
  | { readonly found: false }
