/** The settings of an application for a test. */
export interface Setting {
  readonly platform: 'express' | 'fastify'
  readonly source: string
  /** The package whose storage the throttler uses. */
  readonly storage?: 'signalbox' | 'nest' | 'nest-lab'
  readonly ttl?: number
  readonly blockDuration?: number
  /** Whether its jobs are enabled. */
  readonly jobs?: boolean
  /** Whether it has a gateway for WebSockets. */
  readonly gateways?: boolean
  /** Whether it serves GraphQL. */
  readonly graphql?: boolean
  /** The port of its microservice, if it has one. */
  readonly rpcPort?: number
  readonly drain?: number
}

/** A report of an application to its test. */
export type Report =
  | { readonly port: number }
  | { readonly job: string; readonly slot: string; readonly token: string }
  | { readonly background: 'holds' | 'aborted' | 'done' }

/** A command from a test to an application. */
export type Order = { readonly letGo: string } | { readonly background: string }
