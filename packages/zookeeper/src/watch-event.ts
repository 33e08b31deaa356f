/** An event of a watch. */
export interface WatchEvent {
  /** `ended`: the session has ended or the watch was removed, and no more events follow; `cause` is the reason. */
  readonly type: 'created' | 'deleted' | 'changed' | 'children' | 'ended'
  readonly path: string
  readonly cause?: Error
}

/** Receives the events of a watch. An exception becomes an uncaught error, as in a timer. */
export type WatchListener = (event: WatchEvent) => void

/** Returns a listener for one event, and a promise of the event, which rejects when the watch ends. */
export function oneEvent(): { readonly listener: WatchListener; readonly event: Promise<WatchEvent> } {
  let listener!: WatchListener
  const event = new Promise<WatchEvent>((resolve, reject) => {
    listener = next => (next.type === 'ended' ? reject(next.cause!) : resolve(next))
  })
  // A caller that never uses the event must not get an unhandled rejection.
  event.catch(() => undefined)
  return { listener, event }
}
