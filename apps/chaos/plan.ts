import type { Random } from 'signalbox-conformance'

/** The kinds of faults, and the relative frequency of each. */
const WEIGHTS = {
  kill: 3,
  stop: 3,
  'shift clock': 2,
  cut: 2,
  'hold requests': 1,
  'hold replies': 1,
  'lose replies': 1,
  delay: 1,
  jitter: 1,
  'lose hints': 1,
  'hold values': 1,
  'kill server': 1,
  'stop server': 1,
} as const

/** Minimum jump of a wall clock, in milliseconds, and the maximum jump as a multiple of it. */
const MIN_JUMP = 1000
const MAX_JUMP = 3600

export type FaultKind = keyof typeof WEIGHTS

/** Faults of a client process. */
export const CLIENT_FAULTS: ReadonlySet<FaultKind> = new Set(['kill', 'stop', 'shift clock'])
/** Faults of the network to the engine. */
export const NETWORK_FAULTS: ReadonlySet<FaultKind> = new Set([
  'cut',
  'hold requests',
  'hold replies',
  'lose replies',
  'delay',
  'jitter',
  'lose hints',
])
/** Network faults that keep a client from sending or receiving. */
export const SILENCES: ReadonlySet<FaultKind> = new Set(['hold requests', 'hold replies', 'lose replies'])
/** Network faults that only keep a client from receiving. */
export const MUTED: ReadonlySet<FaultKind> = new Set(['hold replies', 'lose replies'])
/** Faults of the server. */
export const SERVER_FAULTS: ReadonlySet<FaultKind> = new Set(['kill server', 'stop server'])
/** Faults of the values that all clients use. */
export const VALUE_FAULTS: ReadonlySet<FaultKind> = new Set(['hold values'])

/** The commands by which a client subscribes to hints, by the scheme of the URL. */
const HINTS: Readonly<Record<string, RegExp>> = {
  redis: /subscribe/i,
  postgres: /\blisten\b/i,
  postgresql: /\blisten\b/i,
}

/** A fault that will happen. */
export interface PlannedFault {
  readonly kind: FaultKind
  /**
   * Index of the client, from 0. With `inside`, the next client that is about to write under a lock takes its place.
   */
  readonly client: number
  readonly inside: boolean
  /** Pause between the recovery from the last fault and this one, in milliseconds. */
  readonly pause: number
  /** Relative duration or strength of the fault, from 0, the minimum, to 1. */
  readonly length: number
  /** Offset of a wall clock from the true time after its jump, in milliseconds; negative if the clock is behind. */
  readonly jump: number
  /** Whether a wall clock that is already wrong is corrected instead. */
  readonly setsRight: boolean
}

/**
 * Returns the kinds of faults that are possible in a run. A Hazelcast member keeps nothing on disk, so it is stopped
 * but never killed.
 */
export function possibleKinds(
  engine: string,
  { network, server, values }: Readonly<Record<'network' | 'server' | 'values', boolean>>,
): readonly FaultKind[] {
  const kinds = [
    ...CLIENT_FAULTS,
    ...(network ? NETWORK_FAULTS : []),
    ...(server ? SERVER_FAULTS : []),
    ...(values ? VALUE_FAULTS : []),
  ]
  const isImpossible = (kind: FaultKind): boolean =>
    (kind === 'kill server' && engine.startsWith('hazelcast:')) || (kind === 'lose hints' && !hintsOf(engine))
  return kinds.filter(kind => !isImpossible(kind))
}

/**
 * Returns a pattern that identifies connections that bring only hints, by what the client sends on them; undefined if
 * the engine has none.
 */
export function hintsOf(engine: string): RegExp | undefined {
  return HINTS[engine.split(':')[0]!]
}

/**
 * Draws the next fault. The same seed gives the same plans in the same order. Chance decides which client then holds a
 * lock.
 */
export function drawFault(random: Random, kinds: readonly FaultKind[], clients: number): PlannedFault {
  const urn = kinds.flatMap(kind => Array.from({ length: WEIGHTS[kind] }, () => kind))
  return {
    kind: urn[random.below(urn.length)]!,
    client: random.below(clients),
    // A loss does most harm between a read and a write.
    inside: random.below(3) > 0,
    pause: 50 + random.below(300),
    length: random.fraction(),
    // Logarithmic, so jumps of seconds are as frequent as jumps of minutes.
    jump: (random.below(2) === 0 ? 1 : -1) * Math.round(MIN_JUMP * MAX_JUMP ** random.fraction()),
    setsRight: random.below(2) === 0,
  }
}
