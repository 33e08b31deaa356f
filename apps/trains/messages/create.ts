import { locationKey } from '../domain/location.js'
import { trainKey, type Train } from '../domain/train.js'
import { name } from './field.js'
import type { Message } from './message.js'
import { ignored, type MessageType } from './message-type.js'
import { count, trainIn } from './state.js'

export interface Create extends Message {
  readonly type: 'create'
  readonly location: string
}

/** Creates a train at a location, unless it exists. */
export const create: MessageType<Create> = {
  type: 'create',
  fields: { train: name, location: name },
  keys: message => [trainKey(message.train), locationKey(message.location)],
  place: message => message.location,
  handle(message, transaction) {
    const existing = trainIn(transaction, message.train)
    if (existing) return ignored('the train exists', { at: existing.location })
    const train: Train = { id: message.train, location: message.location }
    transaction.put(trainKey(train.id), train)
    count(transaction, train.location, 'created')
    return { event: 'created', details: { at: train.location } }
  },
}
