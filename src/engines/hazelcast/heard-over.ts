import type { Client } from 'hazelcast-client'

/** Where a client has its listeners; no part of what the package documents, so all may be absent. */
interface Inside {
  readonly listenerService?: {
    readonly registrations?: ReadonlyMap<
      unknown,
      { readonly connectionRegistrations?: ReadonlyMap<object, unknown> }
    >
  }
}

/** The connections over which a client hears of events: for each of its listeners those on which a member has taken it. */
export function heardOver(client: Client): readonly object[] {
  const { listenerService } = client as unknown as Inside
  return [...(listenerService?.registrations?.values() ?? [])].flatMap(({ connectionRegistrations }) => [
    ...(connectionRegistrations?.keys() ?? []),
  ])
}
