/** How a test wants an application. */
export interface Setting {
  readonly platform: 'express' | 'fastify'
  readonly source: string
  /** Whose storage the throttler has. */
  readonly storage?: 'signalbox' | 'nest' | 'nest-lab'
  readonly ttl?: number
  readonly blockDuration?: number
  /** Whether its jobs run. */
  readonly jobs?: boolean
  /** Whether it has a gateway for WebSockets. */
  readonly gateways?: boolean
  /** Whether it has GraphQL. */
  readonly graphql?: boolean
  /** The port of its microservice, if it has one. */
  readonly rpcPort?: number
  readonly drain?: number
}

/** A report of an application to the test that has started it. */
export type Report =
  | { readonly port: number }
  | { readonly job: string; readonly slot: string; readonly token: string }
  | { readonly background: 'holds' | 'aborted' | 'done' }

/** An order of a test to an application. */
export type Order = { readonly letGo: string } | { readonly background: string }
