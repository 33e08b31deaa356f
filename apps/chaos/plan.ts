import type { Random } from 'signalbox-conformance'

/** What a client, a network or a server can suffer, and how often relative to the others. */
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

/** How far a wall clock jumps at least, in milliseconds, and the maximum multiple of it. */
const MIN_JUMP = 1000
const MAX_JUMP = 3600

export type FaultKind = keyof typeof WEIGHTS

/** What is done to a process. */
export const CLIENT_FAULTS: ReadonlySet<FaultKind> = new Set(['kill', 'stop', 'shift clock'])
/** What is done to the way to the engine. */
export const NETWORK_FAULTS: ReadonlySet<FaultKind> = new Set([
  'cut',
  'hold requests',
  'hold replies',
  'lose replies',
  'delay',
  'jitter',
  'lose hints',
])
/** Of these, what keeps a client from sending or receiving. */
export const SILENCES: ReadonlySet<FaultKind> = new Set(['hold requests', 'hold replies', 'lose replies'])
/** Of these, what keeps it only from receiving. */
export const MUTED: ReadonlySet<FaultKind> = new Set(['hold replies', 'lose replies'])
/** What is done to the engine. */
export const SERVER_FAULTS: ReadonlySet<FaultKind> = new Set(['kill server', 'stop server'])
/** What is done to the values that all clients use. */
export const VALUE_FAULTS: ReadonlySet<FaultKind> = new Set(['hold values'])

/** By the scheme of the URL. */
const HINTS: Readonly<Record<string, RegExp>> = {
  redis: /subscribe/i,
  postgres: /\blisten\b/i,
  postgresql: /\blisten\b/i,
}

/** A fault that is going to happen. */
export interface PlannedFault {
  readonly kind: FaultKind
  /** Which client, counted from 0; for `inside` whichever is about to write under a lock. */
  readonly client: number
  readonly inside: boolean
  /** How long after everything continues again since the last one, in milliseconds. */
  readonly pause: number
  /** How long what lasts lasts: from 0 for shortest to 1. */
  readonly length: number
  /** How far a wall clock jumps ahead of the true time, or behind it when negative, in milliseconds. */
  readonly jump: number
  /** Whether a wall clock that is wrong already is set right instead. */
  readonly setsRight: boolean
}

/**
 * The kinds that are possible here. A Hazelcast member keeps nothing that outlives it, so it is stopped and never
 * killed.
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

/** What a client says on a connection over which only hints come. */
export function hintsOf(engine: string): RegExp | undefined {
  return HINTS[engine.split(':')[0]!]
}

/**
 * Draws the next fault; the same plans come in the same order from the same seed. Which client holds then is chance.
 */
export function drawFault(random: Random, kinds: readonly FaultKind[], clients: number): PlannedFault {
  const urn = kinds.flatMap(kind => Array.from({ length: WEIGHTS[kind] }, () => kind))
  return {
    kind: urn[random.below(urn.length)]!,
    client: random.below(clients),
    // The best moment for a loss is between the reading and the writing.
    inside: random.below(3) > 0,
    pause: 50 + random.below(300),
    length: random.fraction(),
    // As many of some seconds as of some minutes.
    jump: (random.below(2) === 0 ? 1 : -1) * Math.round(MIN_JUMP * MAX_JUMP ** random.fraction()),
    setsRight: random.below(2) === 0,
  }
}
