import type { Commit, Operation, Outcomes } from '../contract.js'

/** The operations that the functions below examine. An engine may have operations of its own. */
type Repeated = Commit | { readonly type: Exclude<Operation['type'], 'commit'> }

/**
 * Whether an operation whose reply was lost may be sent again: applied twice, it has the same effect as once. A value
 * that was created may have been deleted again by another process, so its creation must not be repeated. `EngineValues`
 * repeats guarded commits, because the grant and the IDs decide their repetition.
 */
export function mayRepeat(operation: Repeated): boolean {
  if (operation.type !== 'commit') return true
  const { guard, expect, writes } = operation
  return (
    guard === undefined &&
    writes.every(({ key }) => expect.some(expected => expected.key === key && expected.version > 0))
  )
}

/**
 * Whether the reply to a repeated operation shows its outcome. Otherwise the first one may have been applied, and this
 * is the reply to a repetition that found nothing more to do.
 */
export function showsOutcome(operation: Repeated, outcome: unknown): boolean {
  switch (operation.type) {
    case 'release':
    case 'downgrade':
    case 'forceRelease':
      return outcome === true
    case 'revoke':
      return outcome !== 0
    case 'extendOrYield':
      return (outcome as Outcomes['extendOrYield']).state !== 'gone'
    case 'commit':
      return (outcome as Outcomes['commit']).state === 'committed'
    default:
      return true
  }
}
