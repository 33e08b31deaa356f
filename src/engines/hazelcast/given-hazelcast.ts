/** Where a box is opened with a configuration of the client, for all that a URL can't say: TLS, authentication, discovery. */
export interface GivenHazelcast {
  /**
   * A `ClientConfig` of `hazelcast-client`, whose types may not be installed. The box makes clients of it, because one that was
   * cut off for long is dead for good.
   */
  readonly hazelcast: object
  /** The map whose keys are locked; default `signalbox`. */
  readonly map?: string | undefined
}
