#!/usr/bin/env node
import { main } from '../src/cli/main.js'
import { chaos, mutex, trains } from './applications.js'

void main([trains, mutex, chaos])
