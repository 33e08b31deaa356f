/** Another holder has one of the resources. */
export class ResourceLockedError extends Error {
  override readonly name = 'ResourceLockedError'
}

/** An operation has failed. `cause` says why. */
export class ExecutionError extends Error {
  override readonly name = 'ExecutionError'

  constructor(
    message: string,
    /** Always empty: a waiter queues, so there are no attempts. */
    readonly attempts: readonly Promise<ExecutionStats>[],
    options?: ErrorOptions,
  ) {
    super(message, options)
  }
}

/** How the servers voted in one attempt of redlock. */
export interface ExecutionStats {
  readonly membershipSize: number
  readonly quorumSize: number
  readonly votesFor: Set<object>
  readonly votesAgainst: Map<object, Error>
}

/** The result of a release. */
export interface ExecutionResult {
  /** Always empty. */
  readonly attempts: readonly Promise<ExecutionStats>[]
}
