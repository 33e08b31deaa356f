/** For errors. */
export const NEON_HTTP = 'the sql of neon(), which sends each statement in an HTTP request, without a session'

/**
 * Whether it is a function that `neon` of `@neondatabase/serverless` returns. It resembles the sql of a transaction of
 * `postgres`, which has no `transaction`.
 */
export function isNeonHttp(client: unknown): boolean {
  return typeof client === 'function' && 'transaction' in client && !('begin' in client)
}
