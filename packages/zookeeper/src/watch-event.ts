/** What a watch tells. */
export interface WatchEvent {
  /** `ended`: the session is over or the watch was removed, and nothing more is told; `cause` says why. */
  readonly type: 'created' | 'deleted' | 'changed' | 'children' | 'ended'
  readonly path: string
  readonly cause?: Error
}

/** Takes what a watch tells. It is called on its own: what it throws is thrown as an uncaught error, as by a timer. */
export type WatchListener = (event: WatchEvent) => void

/** A listener for one event, and the event as a promise; the promise is rejected when the watch ends. */
export function oneEvent(): { readonly listener: WatchListener; readonly event: Promise<WatchEvent> } {
  let listener!: WatchListener
  const event = new Promise<WatchEvent>((resolve, reject) => {
    listener = told => (told.type === 'ended' ? reject(told.cause!) : resolve(told))
  })
  // A caller that never looks at the event must not get an unhandled rejection.
  event.catch(() => undefined)
  return { listener, event }
}
