/** Where a box is opened with a configuration of the client, for all that a URL can't say: TLS, authentication, discovery. */
export interface GivenHazelcast {
  /**
   * A `ClientConfig` of `hazelcast-client`, whose types may not be installed. The box makes clients of it, because one that was
   * cut off for long is dead for good.
   */
  readonly hazelcast: object
  /** The map whose keys are locked; default `signalbox`. */
  readonly map?: string | undefined
  /**
   * Keeps who holds and who waits in the CP subsystem, in the group that is called like the map, and locks FencedLocks of that
   * group in place of the map's keys. `safe` refuses, with an UnavailableError, a CP subsystem in unsafe mode (its
   * `cp-member-count` is 0); `unsafe` takes it, too. A cluster that has none is refused by both. Default: it is not used.
   */
  readonly cp?: 'safe' | 'unsafe' | undefined
}

/** Which CP subsystem a box takes. */
export type CpMode = NonNullable<GivenHazelcast['cp']>
