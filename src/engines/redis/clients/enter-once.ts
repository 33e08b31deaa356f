/**
 * Enters a channel unless that was done or is under way. One that could not be entered can be tried anew.
 * @param channels by when they are entered.
 */
export function enterOnce(
  channels: Map<string, Promise<void>>,
  channel: string,
  enter: () => Promise<void>,
): Promise<void> {
  const known = channels.get(channel)
  if (known !== undefined) return known
  const entered = enter()
  channels.set(channel, entered)
  entered.catch(() => {
    if (channels.get(channel) === entered) channels.delete(channel)
  })
  return entered
}
