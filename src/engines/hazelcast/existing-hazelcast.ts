/** Opens a box with a configuration of the client, for what a URL can't say: TLS, authentication, discovery. */
export interface ExistingHazelcast {
  /**
   * A `ClientConfig` of `hazelcast-client`, whose types may not be installed. The box makes a new client of it when
   * one has died, because a client that was cut off for long never comes back.
   */
  readonly hazelcast: object
  /** The map whose keys are locked; default `signalbox`. */
  readonly map?: string | undefined
}
