import * as hazelcast from 'hazelcast-client'
import type { Package } from '../../../packages/hazelcast/src/link.js'

type AnyMap = Record<string, (...args: unknown[]) => Promise<unknown>>

/** A remote call of a map that a client is about to make. */
export interface MapCall {
  /** The name of the map. */
  readonly map: string
  readonly method: string
  readonly key: unknown
  send(): Promise<unknown>
}

const REMOTE = /^(get|getAll|set|delete|replaceIfSame|putIfAbsent|remove|tryLock|unlock|isLocked)$/

/**
 * Returns the client package with clients that pass the remote calls of their maps to `call`.
 * @param started receives each client once it is connected; its error fails the start
 */
export function intercepted(
  call: (call: MapCall) => Promise<unknown>,
  started: (client: hazelcast.Client) => void = () => undefined,
): Package {
  const watched = (map: string, target: AnyMap): AnyMap =>
    new Proxy(target, {
      get(_, name) {
        const method = target[name as string]!
        if (typeof name !== 'string' || !REMOTE.test(name)) return method
        return (...args: unknown[]) =>
          call({ map, method: name, key: args[0], send: () => method.apply(target, args) })
      },
    })
  const Client = {
    async newHazelcastClient(config: hazelcast.ClientConfig) {
      const client = await hazelcast.Client.newHazelcastClient(config)
      started(client)
      return new Proxy(client, {
        get(target, name) {
          if (name === 'getMap')
            return async (map: string) => watched(map, (await target.getMap(map)) as never)
          const member: unknown = Reflect.get(target, name)
          return typeof member === 'function' ? (member.bind(target) as unknown) : member
        },
      })
    },
  }
  return { ...hazelcast, Client: Client as unknown as typeof hazelcast.Client }
}
