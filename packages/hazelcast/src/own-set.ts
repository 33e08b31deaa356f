import type { LockRequest, WaitTerms } from 'signalbox/engine'

/** A set of this box. */
export interface OwnSet {
  readonly request: LockRequest
  /** The terms of its last enqueue or check-in. */
  terms: WaitTerms
  stage: 'waiting' | 'standing' | 'held' | 'ended'
  /** Whether it has entered the waiting room. */
  isInRoom: boolean
  /** Its keys for which other sets wait in the waiting room; undefined if they are not known. */
  wanted: ReadonlySet<string> | undefined
  /** Whether the waiting room was asked, and no other set waits there for its keys. */
  mayPass: boolean
  /** The greatest number that any of its keys had; once it is granted, its own. */
  number: number
  /** The number with which its home has granted it when it last asked its keys; 0 if it has not. */
  granted: number
  /** The keys that are kept for it until it leaves its home. */
  readonly here: Set<string>
  /** The check of its keys after a hint. */
  waking: Promise<boolean> | undefined
  /** The clock time at which it last began to enter the queues. */
  began: number
  /** Whether it has been in the queue of its home since then. */
  hasStood: boolean
}
