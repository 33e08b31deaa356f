/**
 * Opens a box with a configuration of the client, for settings that a URL can't have: TLS, authentication, discovery.
 */
export interface ExistingHazelcast {
  /**
   * A `ClientConfig` of `hazelcast-client`, whose types may not be installed. The box creates a new client from it when
   * one has died, because a client that was disconnected for too long never reconnects.
   */
  readonly hazelcast: object
  /** The map whose keys are locked; default `signalbox`. */
  readonly map?: string | undefined
}
