/** Describes such a client in errors. */
export const NEON_HTTP = 'the sql of neon(), which sends each statement in an HTTP request, without a session'

/**
 * Whether a client is a function that `neon` of `@neondatabase/serverless` returns. It resembles the `sql` of a
 * transaction of `postgres`, but that has no property `transaction`.
 */
export function isNeonHttp(client: unknown): boolean {
  return typeof client === 'function' && 'transaction' in client && !('begin' in client)
}
