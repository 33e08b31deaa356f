/** A search by TLC, with at most one guard of the design taken out. */
export interface Configuration {
  readonly module: 'Lock' | 'Commit'
  /** The name of the file of `spec/` with its constants. */
  readonly file: string
  /** Constants with other values than in the file, so that a small search finds the fault that the guard prevents. */
  readonly bounds: Readonly<Record<string, string>>
  /** The constant that is changed, with its value; undefined for the whole design. */
  readonly without?: readonly [constant: string, value: string]
  /** The promise that breaks. */
  readonly breaks: string
}

/** Clocks of clients that may be slower than that of the table. */
const SLOW = ['Paces', '{0, 1}'] as const

/** Three requests, whose messages come one after the other. */
const QUEUE = { Requests: '3', Messages: '1' }
/** The same with one message that is late, and short leases. */
const LATE = { ...QUEUE, Messages: '2', Lease: '1' }
const THREE = { ...QUEUE, Clients: '{a, b, d}', Lease: '1' }
const READER = { Active: '{3, 5}' }

/** Each guard of the design with the promise that breaks without it. */
export const guards: readonly Configuration[] = [
  lock('FenceOnWrite', 'WritesInOrder', {}),
  lock('NumbersOutliveGrants', 'NumbersRise', {}),
  lock('DeadlineFromSend', 'OneHolder', {}),
  lock('StopAtDeadline', 'OneHolder', {}),
  lock('RenewNeedsGrant', 'OneHolder', {}),
  lock('ReleaseNamesGrant', 'OneHolder', LATE),
  lock('DropOvertaken', 'OneHolder', QUEUE),
  lock('JoinAtEnd', 'FirstComeFirstServed', THREE),
  lock('LeaseEnds', 'ServedInTime', {}, 'LockLiveness.cfg'),
  lock('WindowEnds', 'ServedInTime', {}, 'LockLiveness.cfg'),
  lock('SignsServe', 'ServedInTime', {}, 'LockLiveness.cfg'),
  commit('BeginFirst', 'AllOrNothing', {}),
  commit('StampReads', 'Serializable', {}),
  commit('StampAll', 'AllOrNothing', {}),
  commit('CompareVersions', 'Serializable', {}),
  commit('CompareTokens', 'LaterHolderWins', {}),
  commit('DecideByCompare', 'AllOrNothing', {}),
  commit('SettleStamps', 'Serializable', {}),
  commit('FinishAsDecided', 'AllOrNothing', {}),
  commit('ClearLast', 'AllOrNothing', {}),
  commit('AbortBeforeFailure', 'ToldAsDecided', {}),
  commit('VerifyReads', 'ReadsTogether', READER),
  commit('OthersSettle', 'AllSettled', {}, 'CommitLiveness.cfg'),
]

/** The assumption that a client's clock is no slower than that of the engine. */
export const slowClock: Configuration = {
  module: 'Lock',
  file: 'Lock.cfg',
  bounds: {},
  without: SLOW,
  breaks: 'OneHolder',
}

/** Cases that no guard needs: a message that arrives twice, and a grant that is extended. */
const more = [
  lock('', 'none', { Repeats: '1', Lease: '1' }),
  lock('', 'none', { Turns: '1', Lease: '1', Messages: '1' }),
]

/** The whole design, within each of the bounds above. */
export const wholes: readonly Configuration[] = [
  ...new Map(
    [...guards, ...more].map(({ module, file, bounds }) => [
      JSON.stringify([file, bounds]),
      { module, file, bounds, breaks: 'none' },
    ]),
  ).values(),
]

function lock(
  guard: string,
  breaks: string,
  bounds: Configuration['bounds'],
  file = 'Lock.cfg',
): Configuration {
  return { module: 'Lock', file, bounds, without: [guard, 'FALSE'], breaks }
}

function commit(
  guard: string,
  breaks: string,
  bounds: Configuration['bounds'],
  file = 'Commit.cfg',
): Configuration {
  return { module: 'Commit', file, bounds, without: [guard, 'FALSE'], breaks }
}
