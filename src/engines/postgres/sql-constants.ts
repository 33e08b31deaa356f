import type { Claim } from '../../engine/claim.js'
import type { Operation } from '../../engine/contract.js'
import { BOUND_CHECK_INTERVAL, CLAIM_WINDOW, WAITER_TTL } from '../../engine/wait-times.js'

/**
 * The numbers of operations. Those on one request come first, up to `cancel`; then the others on locks, up to `revoke`.
 */
export const KINDS = {
  enqueue: 1,
  release: 2,
  renew: 3,
  extendOrYield: 4,
  checkIn: 5,
  cancel: 6,
  downgrade: 7,
  sweepExpired: 8,
  forceRelease: 9,
  revoke: 10,
  read: 11,
  commit: 12,
  watch: 13,
  unwatch: 14,
} as const satisfies Record<Exclude<Operation['type'], 'alive' | 'inspect' | 'list'>, number>

export const MODES = { exclusive: 1, shared: 2, permits: 3 } as const satisfies Record<Claim['mode'], number>

/** The role of a value in a call. A value that is expected and written appears once, as written or deleted. */
export const ROLES = { read: 1, expected: 2, written: 3, deleted: 4 } as const

/** The steps of a call that execute several operations with one statement each; 0 for other operations. */
export const STEPS = { finish: 1, grant: 2 } as const

/** The expected version of a value if any version will do. */
export const ANY_VERSION = -1

/** The constants that the SQL names, by `{group.name}`. Times are in milliseconds. */
const CONSTANTS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  kind: KINDS,
  mode: MODES,
  role: ROLES,
  step: STEPS,
  phase: { waiting: 0, reserved: 1, held: 2 },
  // The number of a waiter that the signs of its session cover.
  number: { covered: -1 },
  version: { any: ANY_VERSION },
  time: {
    claimWindow: CLAIM_WINDOW,
    waiterTtl: WAITER_TTL,
    boundCheck: BOUND_CHECK_INTERVAL,
    // Time for which rows without effect are kept.
    kept: 60_000,
  },
  // Number of changes of a row after which it gets a new number.
  changes: { max: 200 },
}

/** Replaces the names of constants in a text of SQL by their values. */
export function withConstants(sql: string): string {
  return sql.replaceAll(/\{(\w+)\.(\w+)\}/g, (name, group: string, its: string) => {
    const value = CONSTANTS[group]?.[its]
    if (value === undefined) throw new Error(`the SQL names an unknown constant: ${name}`)
    return String(value)
  })
}
