import { runTask, type TaskMessage } from './store-tasks';

self.onmessage = async ({ data: { id, name, args } }: MessageEvent<TaskMessage>) => {
  try {
    self.postMessage({ id, value: await runTask(name, args) });
  } catch (error) {
    self.postMessage({ id, error: String(error) });
  }
};
